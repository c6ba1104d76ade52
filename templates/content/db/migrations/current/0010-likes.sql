-- The migration you are working on. `npm run dev` re-runs it on every save, so it begins by dropping what it creates.
drop table if exists public.likes;

create table public.likes (
  article_id bigint not null constraint likes_article_id_fkey references public.articles on delete cascade,
  user_id    bigint not null default auth.uid() constraint likes_user_id_fkey references public.users on delete cascade,
  created_at timestamptz not null default now(),
  constraint likes_pkey primary key (article_id, user_id)
);
create index likes_of_user on public.likes (user_id);
alter table public.likes enable row level security;
create policy select_all on public.likes for select using (true);
create policy insert_own on public.likes for insert to authenticated with check (user_id = (select auth.uid()));
create policy delete_own on public.likes for delete to authenticated using (user_id = (select auth.uid()));
create policy admin_all on public.likes to admin using (true) with check (true);
grant select on public.likes to anon, authenticated, service_role;
grant insert (article_id), delete on public.likes to authenticated;
grant select, insert, update, delete on public.likes to admin;
comment on table public.likes is 'Who likes which article.';
comment on column public.likes.article_id is 'The article.';
comment on column public.likes.user_id is 'The user who likes it.';
comment on column public.likes.created_at is 'Since when.';
comment on constraint likes_pkey on public.likes is 'You like this article already.';
comment on constraint likes_article_id_fkey on public.likes is 'The article must exist.';
comment on constraint likes_user_id_fkey on public.likes is 'The user must exist.';
