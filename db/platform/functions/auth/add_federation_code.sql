create or replace function auth.add_federation_code(
  code_hash bytea, user_id bigint, code_challenge text, seconds integer
) returns void as $$
begin
  delete from auth.federation_codes as expired where expired.code_hash in (
    select codes.code_hash from auth.federation_codes as codes where expires_at < now()
    order by expires_at limit 10 for update skip locked
  );
  insert into auth.federation_codes (code_hash, user_id, code_challenge, expires_at)
    values (
      add_federation_code.code_hash, add_federation_code.user_id, add_federation_code.code_challenge,
      now() + make_interval(secs => seconds)
    );
end;
$$ language plpgsql set search_path = '';
comment on function auth.add_federation_code is 'Stores a code that its bearer exchanges for a pair of tokens.';
