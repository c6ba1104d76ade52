-- An expression without a sub-select is inlined: without a language it costs what reading the column costs. A setting search_path would
-- keep Postgres from inlining it: all names are qualified, and there are no operators.
create or replace function public.articles_title(article public.articles, language text default null) returns text as $$
  select case
    when language is null then article.title
    else coalesce(api.translated_title(article.id, language), article.title)
  end;
$$ language sql stable parallel safe;
grant execute on function public.articles_title to anon, authenticated, service_role;
comment on function public.articles_title is
  e'@notNull\nThe title, in the given language (such as de or pt-BR) when there is a translation.';
