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
