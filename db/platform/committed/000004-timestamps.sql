--! Previous: sha1:c248696efd6e011d260defa7773d6bd245b33532
--! Hash: sha1:11c2d6a4754b7fb8ad22bdb5c587bc7d69020dce
--! Message: timestamps

-- For tables with the columns created_at and updated_at.
--! Included private/tg__timestamps.sql
-- The time of the change, not the start of the transaction: other transactions may have changed and shown the row meanwhile. It always
-- moves forward, whatever the clock does; by at least one millisecond, because clients read times in milliseconds.
create or replace function private.tg__timestamps() returns trigger as $$
begin
  NEW.created_at := OLD.created_at;
  NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at + interval '1 millisecond');
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__timestamps is 'Before update: keeps created_at, moves updated_at forward.';
--! EndIncluded private/tg__timestamps.sql
