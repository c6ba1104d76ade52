create or replace function auth.sign_out(user_id bigint, session_id uuid, scope text, client_info auth.client_info)
returns void as $$
begin
  perform auth.lock_account(sign_out.user_id);
  if scope = 'local' then
    update auth.refresh_tokens as token set revoked_at = now()
      where token.user_id = sign_out.user_id and token.revoked_at is null and token.family_id = sign_out.session_id;
  else
    perform auth.end_sign_ins(sign_out.user_id, case scope when 'others' then session_id end);
  end if;
  perform auth.log_event('account.signed_out', sign_out.user_id, client_info, jsonb_build_object('scope', scope));
end;
$$ language plpgsql set search_path = '';
comment on function auth.sign_out is
  'Ends sign-ins of the user: all (global), this one by tokens (local), or all except this one (others).';
