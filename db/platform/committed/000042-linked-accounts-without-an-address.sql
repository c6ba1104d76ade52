--! Previous: sha1:b864ec11e29ff20af9c8bab5b54e87fb62f50bd4
--! Hash: sha1:ad47a3821693d54152087b0f50a53693e3b1432a
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
