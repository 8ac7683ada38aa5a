-- Nothing: does the server answer?
SELECT 1;
