create or replace function auth.open_session(
  user_id bigint, id_hash bytea, idle_seconds integer, seconds integer, client_info auth.client_info,
  out username text, out claims jsonb
) as $$
begin
  delete from auth.sessions where sessions.user_id = open_session.user_id;
  insert into auth.sessions (id_hash, user_id, idle_expires_at, expires_at, address, user_agent)
    values (
      open_session.id_hash, open_session.user_id, now() + make_interval(secs => idle_seconds),
      now() + make_interval(secs => open_session.seconds), client_info.address, client_info.user_agent
    );
  perform auth.log_event('session.created', open_session.user_id, client_info);
  delete from auth.sessions as expired where expired.id_hash in (
    select sessions.id_hash from auth.sessions where least(idle_expires_at, expires_at) < now()
    order by least(idle_expires_at, expires_at) limit 10 for update skip locked
  );
  update auth.users as account set last_sign_in_at = now()
    where account.user_id = open_session.user_id returning account.username into username;
  claims := auth.claims_of(open_session.user_id);
end;
$$ language plpgsql set search_path = '';
comment on function auth.open_session is
  'Creates a session and ends the previous one. The caller has locked the account.';
