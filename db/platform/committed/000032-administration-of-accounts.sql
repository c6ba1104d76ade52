--! Previous: sha1:1b7204a0d06ac4b32a4a944457d1e2ade25b18dc
--! Hash: sha1:48cac30d3472aeeca777d7443485db80d59572c4
--! Message: administration of accounts

-- What the administration of accounts does, at /auth/v1/admin and elsewhere.
--! Included auth/set_email.sql
-- A database whose accounts belong to rows of public.users has the address there.
create or replace function auth.set_email(user_id bigint, email text) returns void as $$
declare
  v_constraint text;
  v_fault public.field_error;
begin
  if exists (
    select from pg_constraint
    where conrelid = 'auth.users'::regclass and contype = 'f' and confrelid = to_regclass('public.users')
  ) then
    update public.users set email = set_email.email where users.id = set_email.user_id;
  else
    update auth.users as account set
        email = set_email.email,
        username = case when lower(account.username) = lower(account.email) then set_email.email else account.username end
      where account.user_id = set_email.user_id;
  end if;
exception
  when unique_violation then
    raise exception 'This e-mail address is already registered' using errcode = 'TAKEN', detail = 'email';
  when check_violation then
    get stacked diagnostics v_constraint = constraint_name;
    v_fault := api.field_error('public.users', v_constraint);
    raise exception '%', coalesce(v_fault.message, 'Give a valid e-mail address') using errcode = 'WRONG', detail = 'email';
end;
$$ language plpgsql set search_path = '';
comment on function auth.set_email is 'Changes the address of the user. The caller has locked the account.';
--! EndIncluded auth/set_email.sql
--! Included auth/apply_email_change.sql
-- Both sides have confirmed it. What was sent to the previous address ends.
create or replace function auth.apply_email_change(user_id bigint, new_email text, client_info auth.client_info) returns void as $$
begin
  perform auth.set_email(apply_email_change.user_id, apply_email_change.new_email);
  update auth.users as account set verified_email = apply_email_change.new_email, is_anonymous = false
    where account.user_id = apply_email_change.user_id;
  delete from auth.mail_tokens as token where token.user_id = apply_email_change.user_id;
  perform auth.log_event('email.changed', apply_email_change.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_email_change is 'Changes the address, which is verified by that. The caller has locked the account.';
--! EndIncluded auth/apply_email_change.sql
--! Included auth/change_account.sql
-- For administrators, who vouch for addresses: an address that replaces a confirmed one is confirmed.
create or replace function auth.change_account(
  user_id bigint, changes jsonb, password_hash text, client_info auth.client_info
) returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(change_account.user_id);
  v_email constant text := changes ->> 'email';
  v_confirms_email constant boolean := coalesce((changes ->> 'email_confirm')::boolean, false);
  v_confirms_phone constant boolean := coalesce((changes ->> 'phone_confirm')::boolean, false);
begin
  if v_account.user_id is null then
    return false;
  end if;
  if changes ? 'role' then
    perform auth.assign_role(v_account.user_id, changes ->> 'role', client_info);
  end if;
  if change_account.password_hash is not null then
    perform auth.set_password(v_account.user_id, change_account.password_hash);
  end if;
  if v_email <> v_account.email or v_account.email is null and v_email is not null then
    perform auth.set_email(v_account.user_id, v_email);
    -- Links and codes that were sent to the previous address end.
    delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  end if;
  begin
    update auth.users as account set
        verified_email = case
          when v_confirms_email or v_email is not null and v_account.email_confirmed_at is not null then account.email
          else account.verified_email
        end,
        phone = coalesce(changes ->> 'phone', account.phone),
        phone_confirmed_at = case when v_confirms_phone then coalesce(account.phone_confirmed_at, now()) else account.phone_confirmed_at end,
        is_anonymous = account.is_anonymous
          and not (v_confirms_email and account.email is not null)
          and not (v_confirms_phone and coalesce(changes ->> 'phone', account.phone) is not null)
      where account.user_id = v_account.user_id;
  exception when unique_violation then
    raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
  end;
  perform auth.set_metadata(v_account.user_id, changes -> 'user_metadata', changes -> 'app_metadata');
  if changes ? 'ban_seconds' then
    perform auth.ban_account(
      v_account.user_id, now() + make_interval(secs => nullif((changes ->> 'ban_seconds')::float, 0)), client_info
    );
  end if;
  perform auth.log_event(
    'account.changed', v_account.user_id, client_info,
    jsonb_build_object('fields', (
      select coalesce(jsonb_agg(field order by field), '[]')
      from (
        select jsonb_object_keys(changes) union all select 'password' where change_account.password_hash is not null
      ) as changed (field)
    ))
  );
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.change_account is 'Changes an account as an administrator. False: there is none.';
--! EndIncluded auth/change_account.sql
--! Included auth/create_account.sql
create or replace function auth.create_account(attributes jsonb, password_hash text, client_info auth.client_info)
returns bigint as $$
declare
  v_changes constant jsonb := attributes - '{id,name,email,role}'::text[];
  v_user_id bigint;
begin
  v_user_id := auth.add_account(
    attributes ->> 'name', attributes ->> 'email', coalesce(attributes ->> 'role', 'authenticated'), create_account.password_hash, client_info
  );
  begin
    update auth.users as account set
        id = coalesce((attributes ->> 'id')::uuid, account.id),
        verified_email = case when (attributes ->> 'email_confirm')::boolean then account.verified_email end
      where account.user_id = v_user_id;
  exception when unique_violation then
    raise exception 'A user with this id exists already' using errcode = 'TAKEN', detail = 'id';
  end;
  if v_changes <> '{}' then
    perform auth.change_account(v_user_id, v_changes, null, client_info);
  end if;
  return v_user_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.create_account is 'Creates an account as an administrator, and returns its key.';
--! EndIncluded auth/create_account.sql
--! Included auth/delete_account.sql
-- A deletion that keeps the row removes what names the person, and every way to sign in.
create or replace function auth.delete_account(user_id bigint, keeps_row boolean, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.users := auth.lock_address(delete_account.user_id);
  v_has_users_table constant boolean := exists (
    select from pg_constraint
    where conrelid = 'auth.users'::regclass and contype = 'f' and confrelid = to_regclass('public.users')
  );
begin
  if v_account.user_id is null then
    return false;
  end if;
  if keeps_row and v_account.deleted_at is not null then
    return true;
  end if;
  perform auth.log_event(
    'account.deletion_requested', v_account.user_id, client_info, jsonb_build_object('keeps_row', keeps_row)
  );
  if not keeps_row then
    if v_has_users_table then
      delete from public.users where users.id = v_account.user_id;
    else
      delete from auth.users as account where account.user_id = v_account.user_id;
    end if;
    return true;
  end if;
  perform auth.set_password(v_account.user_id, null);
  perform auth.set_email(v_account.user_id, 'deleted-' || v_account.id || '@deleted.invalid');
  if v_has_users_table then
    perform auth.rename_user(v_account.user_id, 'Deleted user');
  end if;
  update auth.users as account set
      username = account.email, verified_email = null, phone = null, phone_confirmed_at = null,
      raw_user_meta_data = '{}', raw_app_meta_data = '{}', deleted_at = clock_timestamp()
    where account.user_id = v_account.user_id;
  delete from auth.token_sessions as session where session.user_id = v_account.user_id;
  delete from auth.refresh_tokens as token where token.user_id = v_account.user_id;
  delete from auth.mfa_factors as factor where factor.user_id = v_account.user_id;
  delete from auth.mfa_backup_codes as code where code.user_id = v_account.user_id;
  delete from auth.passkeys as passkey where passkey.user_id = v_account.user_id;
  delete from auth.identities as identity where identity.user_id = v_account.user_id;
  delete from auth.mail_tokens as token where token.user_id = v_account.user_id;
  update auth.api_keys as key set revoked_at = now() where key.owner_id = v_account.user_id and key.revoked_at is null;
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_account is 'Deletes an account as an administrator. False: there is none.';
--! EndIncluded auth/delete_account.sql
--! Included auth/delete_factor_of.sql
create or replace function auth.delete_factor_of(user_id bigint, factor_id uuid, client_info auth.client_info)
returns boolean as $$
declare
  v_account constant auth.users := auth.lock_account(delete_factor_of.user_id);
  v_factor auth.mfa_factors;
begin
  select * into v_factor from auth.mfa_factors as factor
    where factor.id = delete_factor_of.factor_id and factor.user_id = v_account.user_id;
  if v_factor.id is null then
    return false;
  end if;
  perform auth.delete_factor(v_factor, client_info);
  return true;
end;
$$ language plpgsql set search_path = '';
comment on function auth.delete_factor_of is
  'Deletes a factor of that user as an administrator. False: the user has no such factor.';
--! EndIncluded auth/delete_factor_of.sql
--! Included auth/invite_account.sql
create or replace function auth.invite_account(user_id bigint, client_info auth.client_info) returns void as $$
begin
  perform auth.lock_account(invite_account.user_id);
  update auth.users as account set invited_at = clock_timestamp() where account.user_id = invite_account.user_id;
  perform auth.log_event('account.invited', invite_account.user_id, client_info);
end;
$$ language plpgsql set search_path = '';
comment on function auth.invite_account is 'Records that an administrator invites the user.';
--! EndIncluded auth/invite_account.sql
-- Lists show the newest accounts first.
create index users_newest_first on auth.users (created_at desc, user_id desc);
