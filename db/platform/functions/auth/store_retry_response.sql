create or replace function auth.store_retry_response(token_hash bytea, retry_hash bytea, sealed_answer bytea, seconds integer)
returns void as $$
  update auth.refresh_tokens as token set
    idempotency_key_hash = store_retry_response.retry_hash,
    sealed_answer = store_retry_response.sealed_answer,
    sealed_until = clock_timestamp() + make_interval(secs => seconds)
  where token.token_hash = store_retry_response.token_hash;
$$ language sql set search_path = '';
comment on function auth.store_retry_response is
  'Stores the pair that the token was exchanged for, in the same transaction, for a retry with the same Idempotency-Key.';
