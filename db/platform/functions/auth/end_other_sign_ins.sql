create or replace function auth.end_other_sign_ins(user_id bigint, id_hash bytea, client_info auth.client_info)
returns void as $$
begin
  perform auth.revoke_refresh_tokens(end_other_sign_ins.user_id, client_info);
  perform auth.end_access_tokens(end_other_sign_ins.user_id);
  delete from auth.sessions
    where sessions.user_id = end_other_sign_ins.user_id and sessions.id_hash <> end_other_sign_ins.id_hash;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_other_sign_ins is 'Ends all sign-ins of the user except this session.';
