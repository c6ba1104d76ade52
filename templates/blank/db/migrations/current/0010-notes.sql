-- The migration you are working on. `npm run dev` re-runs it on every save, so it begins by dropping what it creates.
drop table if exists public.notes;

create table public.notes (
  id         bigint generated always as identity primary key,
  author_id  bigint not null default auth.uid(),
  words      text not null
             constraint notes_words_max_length check (length(words) <= 10000),
  is_public  boolean not null default false,
  created_at timestamptz not null default now()
);
create index notes_of_author on public.notes (author_id);

alter table public.notes enable row level security;
create policy select_public on public.notes for select using (is_public);
create policy select_own on public.notes for select to authenticated using (author_id = (select auth.uid()));
create policy insert_own on public.notes for insert to authenticated with check (author_id = (select auth.uid()));
create policy update_own on public.notes for update to authenticated using (author_id = (select auth.uid()));
create policy delete_own on public.notes for delete to authenticated using (author_id = (select auth.uid()));
create policy admin_all on public.notes to admin using (true) with check (true);

-- A table is served as soon as a role is granted something on it. Clients may not write id, author_id and created_at.
grant select on public.notes to anon, authenticated;
grant insert (words, is_public), update (words, is_public), delete on public.notes to authenticated;
grant select, insert, update, delete on public.notes to admin, service_role;

-- Comments are documentation for clients; the comment on a constraint is the message when it is violated, except in /rest/v1, which sends
-- that of Postgres, as PostgREST does.
comment on table public.notes is 'A note.';
comment on column public.notes.id is 'Assigned by the service.';
comment on column public.notes.author_id is 'The user who wrote it.';
comment on column public.notes.words is 'The text, at most 10,000 characters.';
comment on column public.notes.is_public is 'Whether everybody may read it.';
comment on column public.notes.created_at is 'When it was written.';
comment on constraint notes_words_max_length on public.notes is 'Write at most 10,000 characters.';
