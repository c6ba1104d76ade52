create or replace function private.containing(keyword text) returns text
language sql immutable parallel safe
return '%' || regexp_replace(left(keyword, 1000), '([\\%_])', '\\\1', 'g') || '%';

grant execute on function private.containing to anon, authenticated, service_role;
comment on function private.containing is
  'The pattern for like and ilike that finds the keyword (its first 1,000 characters) anywhere; wildcards are escaped.';
