create or replace function auth.use_mail_link(
  token_hash bytea, purposes text[], needs_flow boolean, client_info auth.client_info,
  out outcome text, out user_id bigint, out purpose text, out flow_id uuid
) as $$
declare
  v_account auth.users;
  v_token auth.mail_tokens;
begin
  select token.user_id into v_account.user_id from auth.mail_tokens as token where token.token_hash = use_mail_link.token_hash;
  v_account := case
    when purposes && '{email_change_current,email_change_new}' then auth.lock_address(v_account.user_id)
    else auth.lock_account(v_account.user_id)
  end;
  select * into v_token from auth.mail_tokens as token
    where token.token_hash = use_mail_link.token_hash and token.purpose = any (purposes)
      and token.used_at is null and token.expires_at > clock_timestamp()
      and auth.is_current_address(v_account, token);
  if v_token.user_id is null or v_account.user_id is null then
    outcome := 'expired';
  elsif auth.is_disabled(v_account) then
    outcome := 'disabled';
  elsif needs_flow and v_token.is_pkce and v_token.flow_id is null then
    outcome := 'flow_expired';
  else
    outcome := auth.confirm_mail_code(v_token, v_account, client_info);
    user_id := v_token.user_id;
    purpose := v_token.purpose;
    flow_id := v_token.flow_id;
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.use_mail_link is
  'Spends a link and locks the account: passed, half, or why not: expired, disabled, or the sign-in that it belongs to has expired.';
