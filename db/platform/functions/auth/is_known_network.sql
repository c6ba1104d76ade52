-- By the audit log, which keeps sign-ins after they have ended. The index audit_log_sign_ins has no failures, which others can cause at will.
create or replace function auth.is_known_network(user_id bigint, address inet) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.audit_log as entry
    where entry.user_id = is_known_network.user_id and entry.event in ('session.created', 'refresh_token.created')
      and entry.at > now() - interval '30 days'
      and auth.network_of(entry.address) = auth.network_of(is_known_network.address)
  );
end;

comment on function auth.is_known_network is 'Whether the user has signed in from this network within 30 days.';
