create or replace function auth.issue_flow_code(
  flow_id uuid, user_id bigint, code_hash bytea, sealed bytea, seconds integer
) returns boolean as $$
begin
  update auth.flow_states as flow set
    user_id = issue_flow_code.user_id, code_hash = issue_flow_code.code_hash, sealed = issue_flow_code.sealed,
    expires_at = clock_timestamp() + make_interval(secs => seconds)
  where flow.id = issue_flow_code.flow_id and flow.code_hash is null and flow.expires_at > clock_timestamp()
    and (flow.user_id is null or flow.user_id = issue_flow_code.user_id);
  return found;
end;
$$ language plpgsql set search_path = '';
comment on function auth.issue_flow_code is
  'Stores the code of a user who has signed in. False: the sign-in has expired, or has a code already. The caller has locked the account.';
