create or replace function auth.lock_user(user_id bigint) returns void
language sql
begin atomic
end;

comment on function auth.lock_user is 'Locks what a deletion of the user locks before the account. The account is the user.';
