--! Previous: sha1:082fb7d51477b5127d3e3081de929fed90454621
--! Hash: sha1:8f0c23f895a259b7eba6ea02b42c598374e60d53
--! Message: more idempotency keys

-- A key without a response takes about 200 bytes for a day.
update private.bounds set bound = 50000 where name = 'idempotency keys of a caller' and bound = 10000;
update private.bounds set bound = 20000 where name = 'idempotency keys of an anonymous caller' and bound = 1000;
update private.bounds set bound = 400000 where name = 'idempotency keys of all anonymous callers' and bound = 200000;
