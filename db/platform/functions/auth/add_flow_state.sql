-- Each call deletes a few expired ones.
create or replace function auth.add_flow_state(
  challenge text, challenge_method text, method text, user_id bigint, seconds integer
) returns uuid as $$
declare
  v_id uuid;
begin
  insert into auth.flow_states (challenge, challenge_method, method, user_id, expires_at)
    values (
      add_flow_state.challenge, add_flow_state.challenge_method, add_flow_state.method, add_flow_state.user_id,
      now() + make_interval(secs => seconds)
    ) returning id into v_id;
  delete from auth.flow_states as expired where expired.id in (
    select flow_states.id from auth.flow_states where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  return v_id;
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_flow_state is 'Begins a sign-in that ends with a code for tokens.';
