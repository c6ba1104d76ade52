create or replace function private.bound(name text) returns bigint
language sql stable parallel safe
return (select bounds.bound from private.bounds where bounds.name = bound.name);
comment on function private.bound is 'How much of something may be kept; changed by an update of private.bounds.';
