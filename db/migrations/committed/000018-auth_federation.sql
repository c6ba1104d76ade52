--! Previous: sha1:fcb3e8d8403d814bfc5dbb38ba3ececf7c8d3bc4
--! Hash: sha1:fb93721ba98688be41a4f01cab9b61c8ba9f3923
--! Message: auth_federation

-- Signing in through another provider.
create table auth.providers (
  name          text primary key check (name ~ '^[a-z][a-z0-9-]*$'),
  kind          text not null check (kind in ('oidc', 'oauth2', 'saml')),
  issuer        text not null unique,
  client_id     text,
  client_secret text,
  -- What differs by kind: endpoints of an oauth2 provider; entry point and certificates of a saml one.
  settings      jsonb not null default '{}' check (jsonb_typeof(settings) = 'object'),
  enabled       boolean not null default true,
  created_at    timestamptz not null default now(),
  constraint providers_client check (kind = 'saml' or client_id is not null)
);
alter table auth.providers enable row level security;
comment on table auth.providers is 'Identity providers that users may sign in through.';
comment on column auth.providers.issuer is
  'What the provider calls itself: compared exactly with what its answers say.';

-- Linked by issuer and subject alone. An e-mail address proves nothing: whoever registers it at some provider first
-- would own the account.
create table auth.identities (
  issuer       text not null references auth.providers (issuer) on update cascade on delete cascade,
  subject      text not null,
  user_id      bigint not null references public.users on delete cascade,
  created_at   timestamptz not null default now(),
  last_used_at timestamptz,
  primary key (issuer, subject)
);
create index on auth.identities (user_id);
alter table auth.identities enable row level security;
comment on table auth.identities is 'Which subject of which issuer is which user.';

create table auth.federation_states (
  state_hash    bytea primary key check (octet_length(state_hash) = 32),
  provider      text not null references auth.providers on update cascade on delete cascade,
  nonce         text,
  code_verifier text,
  request_id    text,
  redirect_to   text,
  created_at    timestamptz not null default now(),
  expires_at    timestamptz not null
);
create index on auth.federation_states (provider);
create index on auth.federation_states (expires_at);
alter table auth.federation_states enable row level security;
comment on table auth.federation_states is
  'Sign-ins under way: made when the browser leaves, deleted when it comes back.';
comment on column auth.federation_states.code_verifier is 'PKCE, RFC 7636.';
comment on column auth.federation_states.request_id is 'The id of a SAML request, which its answer must name.';

create table auth.federation_replays (
  issuer     text not null references auth.providers (issuer) on update cascade on delete cascade,
  message_id text not null,
  expires_at timestamptz not null,
  primary key (issuer, message_id)
);
create index on auth.federation_replays (expires_at);
alter table auth.federation_replays enable row level security;
comment on table auth.federation_replays is
  'Assertions that were accepted, kept until they expire: each is accepted once.';
