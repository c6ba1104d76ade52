--! Previous: sha1:114fe09201640ac21a5c621c04f1b97fb8099b48
--! Hash: sha1:b9235a76b778d68a4402ae3bc7c18bb7f7ef2f13
--! Message: article translations

create table public.article_translations (
  article_id bigint not null
             constraint article_translations_article_id_fkey references public.articles on delete cascade,
  -- Ten parts are more than any language tag has, and a longer one would not fit into the index of the key (54000).
  language   text not null
             constraint article_translations_language_format
             check (language ~ '^[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,10}$'),
  title      text not null
             constraint article_translations_title_length check (length(title) >= 5),
  created_at timestamptz not null default now(),
  updated_at timestamptz,
  constraint article_translations_pkey primary key (article_id, language)
);
alter table public.article_translations add constraint article_translations_title_max_length
  check (length(title) <= 300) not valid;

create trigger _100_timestamps before update on public.article_translations
  for each row execute function private.tg__timestamps();

alter table public.article_translations enable row level security;
create policy select_all on public.article_translations for select using (true);
create policy write_own on public.article_translations to authenticated
  using (
    exists (select from public.articles where articles.id = article_id and articles.author_id = (select auth.uid()))
  );
create policy admin_all on public.article_translations to admin using (true) with check (true);

-- A translation keeps its article and language: delete it and write another.
grant select on public.article_translations to anon, authenticated;
grant insert (article_id, language, title), update (title), delete on public.article_translations to authenticated;
grant select, insert, update, delete on public.article_translations to service_role;

comment on table public.article_translations is
  e'@behavior -manyRelation:resource:list\nThe title of an article in another language.';
comment on column public.article_translations.article_id is 'The article.';
comment on column public.article_translations.language is 'A language tag such as de or pt-BR.';
comment on column public.article_translations.title is 'The title in that language, 5 to 300 characters.';
comment on column public.article_translations.created_at is 'When it was created.';
comment on column public.article_translations.updated_at is 'When it was last changed; null when it never was.';

comment on constraint article_translations_pkey on public.article_translations is
  'This article has a title in that language already; change that one.';
comment on constraint article_translations_article_id_fkey on public.article_translations is
  'The article must exist.';
comment on constraint article_translations_language_format on public.article_translations is
  'Give a language tag such as de or pt-BR.';
comment on constraint article_translations_title_length on public.article_translations is
  'Give a title of at least 5 characters.';
comment on constraint article_translations_title_max_length on public.article_translations is
  'Give a title of at most 300 characters.';

--! Included private/translated_title.sql
create or replace function private.translated_title(article_id bigint, language text) returns text
language sql stable parallel safe
begin atomic
  select translation.title
  from public.article_translations as translation
  where translation.article_id = translated_title.article_id and translation.language = translated_title.language;
end;

grant execute on function private.translated_title to anon, authenticated, service_role;
comment on function private.translated_title is 'The title in that language; null without a translation.';
--! EndIncluded private/translated_title.sql
--! Included public/articles_title.sql
-- An expression without a sub-select is inlined: without a language it costs what reading the column costs.
create or replace function public.articles_title(article public.articles, language text default null) returns text
language sql stable parallel safe
return case
  when language is null then article.title
  else coalesce(private.translated_title(article.id, language), article.title)
end;

grant execute on function public.articles_title to anon, authenticated, service_role;
comment on function public.articles_title is
  e'@notNull\nThe title, in the given language (such as de or pt-BR) when there is a translation.';
--! EndIncluded public/articles_title.sql
