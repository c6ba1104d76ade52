create or replace function public.articles_related_articles(article public.articles, "limit" integer default 5)
returns setof public.articles as $$
  select other.*
  from api.related_articles(article.id, article.tags, "limit") with ordinality as found (id, position)
  join public.articles as other on other.id = found.id
  order by found.position;
$$ language sql stable parallel safe rows 5 set search_path = '';
grant execute on function public.articles_related_articles to anon, authenticated, service_role;
comment on function public.articles_related_articles is
  'Other articles that share a tag with this one, those with the most tags in common first.';
