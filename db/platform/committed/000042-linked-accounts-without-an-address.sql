--! Previous: sha1:25236ea7485d099d73762ae7f624e7fad8ecea46
--! Hash: sha1:537f893f1cab9f52ae192ff526c8c6622ada1be5
--! Message: linked accounts without an address

-- A provider may vouch for addresses, and send none: the account then stays without one.

create or replace function auth.keep_anonymous_account(user_id bigint, provider auth.providers, claims jsonb, client_info auth.client_info) returns void as $$
declare
  v_account constant auth.users := auth.lock_account(keep_anonymous_account.user_id);
  v_email constant text := nullif(btrim(claims ->> 'email'), '');
begin
  if not v_account.is_anonymous then
    return;
  end if;
  if v_email is not null
    and (provider.trusts_email or coalesce((claims ->> 'email_verified')::boolean, false))
    and not exists (select from auth.account_faults(null, v_email, null, null) as fault where fault.field = 'email')
    and auth.find_user(v_email) is null
  then
    perform auth.set_confirmed_email(v_account.user_id, v_email, client_info);
  end if;
  update auth.users as account set is_anonymous = false where account.user_id = v_account.user_id;
end;
$$ language plpgsql set search_path = '';
