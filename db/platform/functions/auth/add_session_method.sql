create or replace function auth.add_session_method(user_id bigint, session_id uuid, method text, aal smallint) returns boolean as $$
begin
  update auth.token_sessions as session set
      aal = greatest(session.aal, add_session_method.aal),
      amr = auth.amr_entry(method, clock_timestamp()) || (
        select coalesce(jsonb_agg(entry), '[]') from jsonb_array_elements(session.amr) as entry
        where entry ->> 'method' <> add_session_method.method
      )
    where session.id = add_session_method.session_id and session.user_id = add_session_method.user_id;
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_session_method is
  'Adds how the user proved to be that user, such as totp, to a sign-in by tokens, and raises its level. The caller has locked the account.';
