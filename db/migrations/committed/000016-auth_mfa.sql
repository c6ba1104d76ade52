--! Previous: sha1:d1155a4f426f66c03f6386a9cfac6f1023afe124
--! Hash: sha1:42c69dbd158282ca9148b6c0a516441a6868b59c
--! Message: auth_mfa

create table auth.mfa_factors (
  user_id        bigint primary key references public.users on delete cascade,
  state          text not null default 'pending' check (state in ('pending', 'enabled')),
  secret         text not null,
  -- RFC 6238 §5.2: a code is accepted once, so neither its time step nor an earlier one comes again.
  last_used_step bigint,
  created_at     timestamptz not null default now(),
  enabled_at     timestamptz,
  constraint mfa_factors_enabled check ((state = 'enabled') = (enabled_at is not null))
);
alter table auth.mfa_factors enable row level security;

comment on table auth.mfa_factors is 'The authenticator app of a user. Not enrolled: no row.';
comment on column auth.mfa_factors.state is
  'pending until a first code proved that the app has the secret; then enabled.';
comment on column auth.mfa_factors.secret is
  'The TOTP secret in base32. It cannot be a hash: codes are computed from it.';

create table auth.mfa_backup_codes (
  user_id    bigint not null references auth.mfa_factors on delete cascade,
  code_hash  text not null,
  created_at timestamptz not null default now(),
  used_at    timestamptz,
  primary key (user_id, code_hash)
);
alter table auth.mfa_backup_codes enable row level security;
comment on table auth.mfa_backup_codes is 'Codes for who has lost the app. Each works once.';
