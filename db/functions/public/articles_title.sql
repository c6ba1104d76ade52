create or replace function public.articles_title(article public.articles, language text default null)
returns text as $$
  select coalesce(
    (
      select translation.title
      from public.article_translations as translation
      where translation.article_id = article.id and translation.language = articles_title.language
    ),
    article.title
  );
$$ language sql stable parallel safe set search_path = '';
grant execute on function public.articles_title to anon, authenticated, service_role;
comment on function public.articles_title is
  e'@notNull\nThe title, in the given language (such as de or pt-BR) when there is a translation.';
