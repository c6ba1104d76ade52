create or replace function realtime.topic() returns text
language sql stable parallel safe
return nullif(current_setting('realtime.topic', true), '');

grant execute on function realtime.topic to anon, authenticated, service_role;
comment on function realtime.topic is 'The name of the private channel that is being asked about, in a policy on realtime.messages.';
