--! Previous: sha1:9d3bb0fd6d0055f60eb6eca6dcfbec46f5442d6c
--! Hash: sha1:79715311d72fe809cb370781fb30cfa184805301
--! AllowInvalidHash

-- Connects the accounts of schema auth to public.users, the home of name and address. An application with a users table of its own copies
-- this file and adapts it: sign-in needs the columns id (bigint), name, email and age, and an email that is unique whatever its case.
alter table auth.users add constraint content_service_users_user_id_fkey foreign key (user_id) references public.users on delete cascade;

-- What refers to an account refers to its user instead, who has some of these rows without an account, too.
do $$
declare
  v_table text;
  v_column text;
begin
  foreach v_table in array
    '{user_roles,user_permissions,sessions,refresh_tokens,mfa_factors,api_keys,mail_tokens,identities,federation_states,federation_logins,federation_codes}'::text[]
  loop
    v_column := case v_table when 'api_keys' then 'owner_id' else 'user_id' end;
    execute format(
      'alter table auth.%1$I drop constraint %2$I, add constraint %2$I foreign key (%3$I) references public.users on delete cascade',
      v_table, 'content_service_' || v_table || '_' || v_column || '_fkey', v_column
    );
  end loop;
end $$;

-- The functions of the platform that know the home.
create or replace function auth.lock_user(user_id bigint) returns void as $$
  select from public.users where users.id = lock_user.user_id for key share;
$$ language sql set search_path = '';
comment on function auth.lock_user is 'Locks what a deletion of the user locks before the account.';

-- The row of public.users is locked for the update of a column with a unique constraint, before the account: another transaction that has
-- locked the account holds a weaker lock on this row, which the update would wait for.
create or replace function auth.lock_address(user_id bigint) returns auth.users as $$
begin
  perform from public.users where users.id = lock_address.user_id for update;
  return auth.lock_account(lock_address.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.lock_address is 'Locks the account as auth.lock_account does, for a change of its address.';

create or replace function auth.find_user(email text) returns bigint
language sql stable
begin atomic
  select users.id from public.users where lower(users.email) = lower(find_user.email);
end;
comment on function auth.find_user is 'The user with that e-mail address, who may have no account.';

create or replace function auth.profile_of(user_id bigint) returns table (name text, email text)
language sql stable
begin atomic
  select users.name, users.email from public.users where users.id = profile_of.user_id;
end;
comment on function auth.profile_of is 'The name and e-mail address of a user, who may have no account.';

-- An insert reports one violated constraint; a form needs all of them at once.
create or replace function auth.account_faults(name text, email text, age integer, username text) returns setof public.field_error as $$
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
comment on function auth.account_faults is 'Everything that prevents such a user from being registered, except values that are taken.';

create or replace function auth.insert_user(name text, email text, age integer, out user_id bigint, out user_row jsonb, out metadata jsonb) as $$
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
comment on function auth.insert_user is 'Creates the row of public.users: the id, the row that a registration returns, and the metadata of the account.';

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

create or replace function auth.delete_user(user_id bigint) returns void as $$
  delete from public.users where users.id = delete_user.user_id;
$$ language sql set search_path = '';
comment on function auth.delete_user is 'Deletes the user and the account.';

-- auth.users.email is a copy.
create function auth.tg_accounts__copy_email() returns trigger as $$
begin
  select users.email into NEW.email from public.users where users.id = NEW.user_id;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_accounts__copy_email is 'Before insert: an account has the address of its user.';
create trigger _050_copy_email before insert on auth.users for each row execute function auth.tg_accounts__copy_email();

-- USERS_ACCESS=open lets anybody change users, but not the address of an account: the link to set a new password is sent there. Not the
-- user either: only the proof of the new address changes it. Applies to callers that policies apply to.

-- Whoever could enter another address could have the password reset by a mail to it. The user proves the new address first; where everybody may
-- change users, the address is unproved afterwards.
create function auth.tg_users__guard_address() returns trigger as $$
begin
  if not exists (select from auth.users as account where account.user_id = OLD.id) then
    return NEW;
  end if;
  if OLD.id is distinct from auth.uid() then
    raise exception 'Only the user, or an administrator, may change the address of an account'
      using errcode = case when auth.uid() is null then 'LOGIN' else 'NOPER' end;
  elsif current_setting('app.users_access', true) is distinct from 'open' then
    raise exception 'A new e-mail address must be confirmed before it replaces this one' using errcode = 'NOPER', detail = 'email',
      hint = 'Change it at /auth/account, or by PUT /auth/v1/user: an e-mail with a link is sent to the new address.';
  end if;
  return NEW;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__guard_address is 'Before update by a request: refuses a change of the address of a user with an account, except by an administrator.';
create trigger _050_guard_address before update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and row_security_active('public.users') and not auth.is_admin()) execute function auth.tg_users__guard_address();

-- Otherwise the old address would remain this user's user name after another user has taken it. What a request changes directly is recorded here;
-- a confirmed change is recorded where it is confirmed.
create function auth.tg_users__rename_account() returns trigger as $$
begin
  update auth.users as account set
      email = NEW.email, username = case when lower(account.username) = lower(OLD.email) or account.is_anonymous then NEW.email else account.username end
    where account.user_id = NEW.id;
  if found and TG_ARGV[0] = 'request' then
    perform auth.log_event('email.changed', NEW.id, null, jsonb_build_object('by', auth.uid(), 'is_confirmed', false));
  end if;
  return null;
end;
$$ language plpgsql security definer set search_path = '';
comment on function auth.tg_users__rename_account is 'After update: the address of the account, and a user name that is the address, change with it.';
create trigger _200_rename_account after update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and not row_security_active('public.users')) execute function auth.tg_users__rename_account();
create trigger _200_rename_account_by_request after update of email on public.users for each row
  when (OLD.email is distinct from NEW.email and row_security_active('public.users')) execute function auth.tg_users__rename_account('request');
