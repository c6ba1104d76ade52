create or replace function auth.has_second_factor_session(user_id bigint, session_id uuid) returns boolean
language sql stable
begin atomic
  select exists (
    select from auth.token_sessions as session
    where session.id = has_second_factor_session.session_id and session.user_id = has_second_factor_session.user_id
      and session.aal >= 2
  );
end;
comment on function auth.has_second_factor_session is 'Whether this sign-in by tokens has proved a second factor.';
