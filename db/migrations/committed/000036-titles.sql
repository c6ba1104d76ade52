--! Previous: sha1:5d25c021dcffa962b5ff9b3200b4f5a6ae24ecb4
--! Hash: sha1:6ed5956c01abde862614122e11d11236f08d2314
--! Message: titles

--! split: 1-current.sql
-- The title without a language costs what the column costs.

--! Included private/translated_title.sql
create or replace function private.translated_title(article_id bigint, language text) returns text
language sql stable parallel safe
begin atomic
  select translation.title
  from public.article_translations as translation
  where translation.article_id = translated_title.article_id and translation.language = translated_title.language;
end;

grant execute on function private.translated_title to anon, authenticated, service_role;
comment on function private.translated_title is 'The title in that language; null where nobody has translated it.';
--! EndIncluded private/translated_title.sql
--! Included public/articles_title.sql
-- An expression without a sub-select becomes part of the statement: without a language the column is read, as if there
-- were no function, at half the cost of a list.
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
