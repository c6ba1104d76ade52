create or replace function auth.save_federation_session(
  session_hash bytea, provider text, subject text, session_index text, sign_out_hint text
) returns void as $$
  insert into auth.federation_sessions (session_hash, provider, subject, session_index, sign_out_hint)
  values (
    save_federation_session.session_hash, save_federation_session.provider, save_federation_session.subject,
    save_federation_session.session_index, save_federation_session.sign_out_hint
  );
$$ language sql set search_path = '';
comment on function auth.save_federation_session is 'Stores the provider through which a session was opened.';
