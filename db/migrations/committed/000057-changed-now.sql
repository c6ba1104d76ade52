--! Previous: sha1:2ce6e9fb6158ea110ae281efc58df576cd160d3a
--! Hash: sha1:8ad4c27451777c238e44d337c36f39bb32beda91
--! Message: changed-now

--! split: 0010-changed-now.sql
-- By the time at which its transaction began, a change was dated before versions of the row that others had read meanwhile.
--! Included private/tg__timestamps.sql
-- When the row is changed, not when the transaction began: meanwhile others may have changed it too, and been read. And it
-- never steps back, whatever the clock does: by one millisecond, because clients read times in milliseconds.
create or replace function private.tg__timestamps() returns trigger as $$
begin
  NEW.created_at := OLD.created_at;
  NEW.updated_at := greatest(clock_timestamp(), OLD.updated_at + interval '1 millisecond');
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__timestamps is 'Before update: keeps created_at, moves updated_at forward.';
--! EndIncluded private/tg__timestamps.sql
