--! Previous: sha1:df3a11c3be2bd4870532b22d526bc4e650f3ad6a
--! Hash: sha1:3bd99188d349c59daf287ea06bfd205a43f8f67a
--! Message: home of users

-- The home of name and address is public.users.
--! Included auth/account_faults.sql
-- An insert reports one violated constraint; a form needs all of them at once.
create or replace function auth.account_faults(name text, email text, age integer, username text)
returns setof public.field_error as $$
declare
  v_row constant jsonb := jsonb_build_object('name', name, 'email', email, 'age', age);
  v_rule record;
  v_is_broken boolean;
begin
  for v_rule in
    select rule.conname, pg_get_expr(rule.conbin, rule.conrelid) as condition
    from pg_constraint as rule
    where rule.conrelid = 'public.users'::regclass and rule.contype = 'c'
    order by rule.conkey, rule.conname
  loop
    execute format('select (%s) is false from jsonb_populate_record(null::public.users, $1)', v_rule.condition)
      into v_is_broken using v_row;
    if v_is_broken then
      return next api.field_error('public.users', v_rule.conname);
    end if;
  end loop;
  if auth.username_fault(username, email) is not null then
    return next row('username', auth.username_fault(username, email))::public.field_error;
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function auth.account_faults is
  'Everything that prevents such a user from being registered, except values that are taken.';
--! EndIncluded auth/account_faults.sql
--! Included auth/delete_user.sql
create or replace function auth.delete_user(user_id bigint) returns void as $$
  delete from public.users where users.id = delete_user.user_id;
$$ language sql set search_path = '';
comment on function auth.delete_user is 'Deletes the user and the account.';
--! EndIncluded auth/delete_user.sql
--! Included auth/find_user.sql
create or replace function auth.find_user(email text) returns bigint
language sql stable
begin atomic
  select users.id from public.users where lower(users.email) = lower(find_user.email);
end;

comment on function auth.find_user is 'The user with that e-mail address, who may have no account.';
--! EndIncluded auth/find_user.sql
--! Included auth/insert_user.sql
create or replace function auth.insert_user(
  name text, email text, age integer, out user_id bigint, out user_row jsonb, out metadata jsonb
) as $$
declare
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  insert into public.users (name, email, age) values (insert_user.name, insert_user.email, insert_user.age)
    returning * into v_user;
  user_id := v_user.id;
  user_row := to_jsonb(v_user);
  metadata := '{}';
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered'
      using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.insert_user is
  'Creates the row of public.users: the id, the row that a registration returns, and the metadata of the account.';
--! EndIncluded auth/insert_user.sql
--! Included auth/lock_user.sql
create or replace function auth.lock_user(user_id bigint) returns void as $$
  select from public.users where users.id = lock_user.user_id for key share;
$$ language sql set search_path = '';
comment on function auth.lock_user is 'Locks what a deletion of the user locks before the account.';
--! EndIncluded auth/lock_user.sql
--! Included auth/profile_of.sql
create or replace function auth.profile_of(user_id bigint) returns table (name text, email text)
language sql stable
begin atomic
  select users.name, users.email from public.users where users.id = profile_of.user_id;
end;

comment on function auth.profile_of is 'The name and e-mail address of a user, who may have no account.';
--! EndIncluded auth/profile_of.sql
--! Included auth/rename_user.sql
create or replace function auth.rename_user(user_id bigint, name text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set name = rename_user.name where users.id = rename_user.user_id;
exception when check_violation then
  get stacked diagnostics v_constraint = constraint_name;
  v_fault := api.field_error('public.users', v_constraint);
  raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.rename_user is 'Changes the name of the user who is signed in.';
--! EndIncluded auth/rename_user.sql
--! Included auth/set_email.sql
create or replace function auth.set_email(user_id bigint, email text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  update public.users set email = set_email.email where users.id = set_email.user_id;
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_email is 'Changes the address of the user. The caller has locked the account.';
--! EndIncluded auth/set_email.sql
--! Included auth/tg_users__rename_account.sql
-- Otherwise the old address would remain this user's user name after another user has taken it.
create or replace function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.users as account set
      email = NEW.email, username = case when lower(account.username) = lower(OLD.email) or account.is_anonymous then NEW.email else account.username end
    where account.user_id = NEW.id;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is
  'After update: the address of the account, and a user name that is the address, change with it.';
--! EndIncluded auth/tg_users__rename_account.sql
--! Included auth/lock_address.sql
-- The row of public.users is locked for the update of a column with a unique constraint, before the account: another transaction that has
-- locked the account holds a weaker lock on this row, which the update would wait for.
create or replace function auth.lock_address(user_id bigint) returns auth.users as $$
begin
  perform from public.users where users.id = lock_address.user_id for update;
  return auth.lock_account(lock_address.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_address is
  'Locks the account as auth.lock_account does, for a change of its address.';
--! EndIncluded auth/lock_address.sql
