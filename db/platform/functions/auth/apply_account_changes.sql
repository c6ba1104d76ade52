-- For administrators, who vouch for addresses: an address that replaces a confirmed one is confirmed.
create or replace function auth.apply_account_changes(account_before auth.users, changes jsonb, client_info auth.client_info)
returns void as $$
declare
  v_email constant text := changes ->> 'email';
  v_confirms_email constant boolean := coalesce((changes ->> 'email_confirm')::boolean, false);
  v_confirms_phone constant boolean := coalesce((changes ->> 'phone_confirm')::boolean, false);
begin
  if changes ? 'role' then
    perform auth.assign_role(account_before.user_id, changes ->> 'role', client_info);
  end if;
  if v_email <> account_before.email or account_before.email is null and v_email is not null then
    perform auth.set_email(account_before.user_id, v_email);
    -- Links and codes that were sent to the previous address end.
    delete from auth.mail_tokens as token where token.user_id = account_before.user_id;
  end if;
  begin
    update auth.users as account set
        verified_email = case
          when v_confirms_email or v_email is not null and account_before.email_confirmed_at is not null then account.email
          else account.verified_email
        end,
        phone = coalesce(changes ->> 'phone', account.phone),
        phone_confirmed_at = case when v_confirms_phone then coalesce(account.phone_confirmed_at, now()) else account.phone_confirmed_at end,
        is_anonymous = account.is_anonymous
          and not (v_confirms_email and account.email is not null)
          and not (v_confirms_phone and coalesce(changes ->> 'phone', account.phone) is not null)
      where account.user_id = account_before.user_id;
  exception when unique_violation then
    raise exception 'This phone number is already registered' using errcode = 'TAKEN', detail = 'phone';
  end;
  perform auth.set_metadata(account_before.user_id, changes -> 'user_metadata', changes -> 'app_metadata');
  if changes ? 'ban_seconds' then
    perform auth.ban_account(
      account_before.user_id, now() + make_interval(secs => nullif((changes ->> 'ban_seconds')::float, 0)), client_info
    );
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.apply_account_changes is
  'Changes what an administrator gives: role, address, number, metadata, ban. The caller has locked the account.';
