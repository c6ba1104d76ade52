create or replace function auth.merge_metadata(metadata jsonb, changes jsonb) returns jsonb
language sql immutable
begin atomic
  select coalesce(jsonb_object_agg(entry.key, entry.value), '{}')
  from jsonb_each(metadata || coalesce(changes, '{}')) as entry
  where not coalesce(changes -> entry.key = 'null', false);
end;

comment on function auth.merge_metadata is 'The object with the changes, without the keys that are null in the changes.';
