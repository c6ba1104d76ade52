create or replace function realtime.topic() returns text
language sql stable parallel safe
return nullif(current_setting('realtime.topic', true), '');

grant execute on function realtime.topic to anon, authenticated, service_role;
comment on function realtime.topic is 'The private channel that is being checked, for policies on realtime.messages.';
