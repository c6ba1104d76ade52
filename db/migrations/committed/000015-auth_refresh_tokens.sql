--! Previous: sha1:812eba0f32baf3f2fd8f93fe759a8570f36b8650
--! Hash: sha1:d1155a4f426f66c03f6386a9cfac6f1023afe124
--! Message: auth_refresh_tokens

-- A sign-in starts a family; each refresh rotates its one valid token. A token that was rotated and comes again was
-- stolen, or its answer was lost: the whole family ends, unless the same Idempotency-Key asks again at once.
create table auth.refresh_tokens (
  token_hash           bytea primary key check (octet_length(token_hash) = 32),
  family_id            uuid not null,
  user_id              bigint not null references public.users on delete cascade,
  issued_at            timestamptz not null default now(),
  expires_at           timestamptz not null check (expires_at > issued_at),
  rotated_at           timestamptz,
  revoked_at           timestamptz,
  idempotency_key_hash bytea check (octet_length(idempotency_key_hash) = 32),
  sealed_answer        bytea,
  sealed_until         timestamptz,
  constraint refresh_tokens_retry check (
    num_nulls(idempotency_key_hash, sealed_answer, sealed_until) in (0, 3)
    and (sealed_answer is null or rotated_at is not null)
  )
);
create index on auth.refresh_tokens (family_id);
create index on auth.refresh_tokens (user_id);
create index on auth.refresh_tokens (expires_at);
alter table auth.refresh_tokens enable row level security;

comment on table auth.refresh_tokens is
  'Refresh tokens, as SHA-256 only, kept until they expire so that a reused one is known.';
comment on column auth.refresh_tokens.rotated_at is 'When it was exchanged for its successor; it is spent since.';
comment on column auth.refresh_tokens.revoked_at is 'When it was ended by logout, or with its family.';
comment on column auth.refresh_tokens.sealed_answer is
  'The pair it was exchanged for, encrypted with a key that only the bearer of this token can derive.';
comment on column auth.refresh_tokens.sealed_until is 'Until when the same Idempotency-Key is given the same pair.';
