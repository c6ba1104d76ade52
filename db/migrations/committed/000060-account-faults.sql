--! Previous: sha1:95d89837febfa5287c1b98f9c698397e33ab7613
--! Hash: sha1:905c0cb934619c86a6ac3e7d0a534e8ee56db465
--! Message: account faults

--! split: 1-current.sql
-- Whoever registers is told of everything that is wrong at once.
--! Included auth/username_fault.sql
create or replace function auth.username_fault(username text, email text) returns text
language sql immutable set search_path = ''
as $$
  select case
    when username like '%@%' and lower(username) <> lower(email)
      then 'A user name with an @ can only be your own e-mail address'
    when username not like '%@%' and username !~ '^[^\s:[:cntrl:]]{1,254}$'
      then 'A user name has 1 to 254 characters, and neither spaces nor colons'
  end
$$;
comment on function auth.username_fault is 'Why that is no user name for whoever has that address; null when it is one.';
--! EndIncluded auth/username_fault.sql
--! Included auth/account_faults.sql
-- An insert names one broken constraint; a form is to be told of all its faults at once.
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
comment on function auth.account_faults is 'All that keeps such a user from being registered, but for what is taken.';
--! EndIncluded auth/account_faults.sql
--! Included auth/register.sql
-- Clients never see a row of credentials, not even in the detail of a broken constraint: what they can get wrong is
-- looked at before.
create or replace function auth.register(
  name text, email text, age integer, username text, password_hash text, sender auth.sender
) returns public.users as $$
declare
  v_username text := coalesce(username, email);
  v_user public.users;
  v_constraint text;
  v_fault public.field_error;
begin
  if auth.username_fault(username, email) is not null then
    raise exception '%', auth.username_fault(username, email) using errcode = 'WRONG', detail = 'username';
  end if;

  begin
    insert into public.users (name, email, age) values (register.name, register.email, register.age)
      returning * into v_user;
  exception
    when unique_violation then
      raise exception 'This e-mail address is already registered'
        using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
    when check_violation then
      get stacked diagnostics v_constraint = constraint_name;
      v_fault := api.field_error('public.users', v_constraint);
      raise exception '%', v_fault.message using errcode = 'WRONG', detail = v_fault.field;
  end;

  begin
    insert into auth.credentials (user_id, username, password_hash)
      values (v_user.id, v_username, register.password_hash);
  exception when unique_violation then
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.id, sender);
  return v_user;
end;
$$ language plpgsql set search_path = '';
comment on function auth.register is 'Makes a user who can sign in. Without a hash: through another provider only.';
--! EndIncluded auth/register.sql
