-- Hear of work that was made due, from any application of the store.
LISTEN runwick;
