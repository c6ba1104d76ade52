create or replace function auth.close_session(id_hash bytea, client_info auth.client_info) returns void as $$
declare
  v_user_id bigint;
begin
  delete from auth.sessions where sessions.id_hash = close_session.id_hash returning user_id into v_user_id;
  if found then
    perform auth.log_event('session.closed', v_user_id, client_info);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function auth.close_session is 'Signs the browser out.';
