--! Previous: sha1:3dfca5b400a2aa00967604fd01a0e5c4982a4fff
--! Hash: sha1:e5d529e6b685c9286ac8fd83f9eaff8a6d68ae6c
--! Message: anonymous accounts

-- An account is anonymous from its insert on, for triggers on auth.users.
drop function if exists auth.register(text, text, integer, text, text, auth.client_info, jsonb);
drop function if exists auth.register(text, text, integer, text, text, auth.client_info, jsonb, boolean);
--! Included auth/register.sql
-- Checks beforehand what a client can get wrong, so that no row of auth.users appears in the detail of an error.
-- The address of an anonymous account is only kept where each row of users has one: triggers copy it from there.
create or replace function auth.register(
  name text, email text, age integer, username text, password_hash text, client_info auth.client_info,
  user_metadata jsonb default null, is_anonymous boolean default false
) returns jsonb as $$
declare
  v_user record;
begin
  if auth.username_fault(username, email) is not null then
    raise exception '%', auth.username_fault(username, email) using errcode = 'WRONG', detail = 'username';
  end if;

  if octet_length(register.user_metadata::text) > 8192 then
    raise exception 'Metadata has at most 8192 bytes' using errcode = 'WRONG', detail = 'data';
  end if;

  v_user := auth.insert_user(name, email, age);
  begin
    insert into auth.users (user_id, username, email, password_hash, is_anonymous, raw_user_meta_data)
      values (
        v_user.user_id, coalesce(register.username, register.email),
        case when not register.is_anonymous then register.email end, register.password_hash, register.is_anonymous,
        case when register.user_metadata is null then v_user.metadata else auth.merge_metadata('{}', register.user_metadata) end
      );
  exception when unique_violation then
    -- Also of the address, where another sign-up has just taken it.
    if auth.find_user(register.email) is distinct from v_user.user_id and auth.find_user(register.email) is not null then
      raise exception 'This e-mail address is already registered'
        using errcode = 'TAKEN', detail = 'email', hint = 'Sign in with it, or use another address.';
    end if;
    raise exception 'This user name is already taken' using errcode = 'TAKEN', detail = 'username';
  end;

  perform auth.log_event('account.created', v_user.user_id, client_info);
  return v_user.user_row;
end;
$$ language plpgsql set search_path = '';
comment on function auth.register is
  'Creates a user who can sign in; without a password hash, through another provider only. Returns the row of the user.';
--! EndIncluded auth/register.sql
