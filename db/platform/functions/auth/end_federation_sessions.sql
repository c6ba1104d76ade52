create or replace function auth.end_federation_sessions(
  provider text, subject text, session_index text, message_id text, message_expires_at timestamptz, client_info auth.client_info
) returns integer as $$
declare
  v_issuer constant text := (select issuer from auth.providers where name = end_federation_sessions.provider);
  v_user_id bigint;
  v_ended integer := 0;
begin
  if not auth.use_message(v_issuer, message_id, message_expires_at) then
    return null;
  end if;
  for v_user_id in
    delete from auth.sessions as session using auth.federation_sessions as federated
      where federated.session_hash = session.id_hash and federated.provider = end_federation_sessions.provider
        and federated.subject = end_federation_sessions.subject
        and coalesce(federated.session_index = end_federation_sessions.session_index, true)
      returning session.user_id
  loop
    v_ended := v_ended + 1;
    perform auth.log_event('session.closed', v_user_id, client_info, jsonb_build_object('provider', provider));
  end loop;
  return v_ended;
end;
$$ language plpgsql set search_path = '';
comment on function auth.end_federation_sessions is
  'Ends the sessions that a provider asks to end, and returns their number. Null: a replayed message.';
