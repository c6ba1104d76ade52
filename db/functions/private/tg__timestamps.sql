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
