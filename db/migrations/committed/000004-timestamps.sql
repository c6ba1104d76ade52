--! Previous: sha1:99df5d3ee76acafb413df085fe8447cf880c2f1f
--! Hash: sha1:d9971da0f0ef14b4e26f1d1b0d53a60ffce049c4
--! Message: timestamps

--! Included private/tg__timestamps.sql
-- A clock that never steps back: of two overlapping updates the later one to commit may have begun first. One
-- millisecond, because clients read times in milliseconds.
create or replace function private.tg__timestamps() returns trigger as $$
begin
  NEW.created_at := OLD.created_at;
  NEW.updated_at := greatest(now(), OLD.updated_at + interval '1 millisecond');
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__timestamps is 'Before update: keeps created_at, moves updated_at forward.';
--! EndIncluded private/tg__timestamps.sql
