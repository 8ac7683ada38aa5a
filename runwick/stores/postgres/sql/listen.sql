-- Hear of work that was made due, from any application of the store, and of what workers are asked for.
LISTEN runwick;
