create or replace function auth.log_event(
  event text, user_id bigint, client_info auth.client_info, details jsonb default '{}'
) returns void as $$
  insert into auth.audit_log (event, user_id, address, request_id, details)
  values (
    log_event.event, log_event.user_id, (log_event.client_info).address, (log_event.client_info).request_id,
    jsonb_strip_nulls(jsonb_build_object('user_agent', (log_event.client_info).user_agent, 'by', (log_event.client_info).actor))
      || log_event.details
  );
$$ language sql set search_path = '';
comment on function auth.log_event is 'Writes to the audit log in the current transaction.';
