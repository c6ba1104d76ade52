--! Previous: sha1:cb112058b3ae8788319e8343867cd23a1c690049
--! Hash: sha1:5928b2cf733916c99bb8c7b8de2f7c81f26294c4
--! Message: shared-queries

-- Queries that administrators keep for one another in Studio. Only the owner reads and writes them, for /admin/v1/queries.
create table private.shared_queries (
  name     text constraint shared_queries_pkey primary key constraint shared_queries_name_length check (length(name) between 1 and 200),
  text     text not null constraint shared_queries_text_length check (length(text) between 1 and 100000),
  saved_by text,
  saved_at timestamptz not null default now()
);
alter table private.shared_queries enable row level security;
comment on table private.shared_queries is 'SQL that administrators share in Studio.';
comment on column private.shared_queries.name is 'What administrators call it.';
comment on column private.shared_queries.text is 'The SQL.';
comment on column private.shared_queries.saved_by is 'The id of the administrator who saved it last; null where nobody signs in.';
comment on column private.shared_queries.saved_at is 'When it was saved last.';
