create or replace function public.articles_related_articles(article public.articles, "limit" integer default 5)
returns setof public.articles as $$
  select other.*
  from public.articles as other
  where other.tags && article.tags and other.id <> article.id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(article.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
$$ language sql stable parallel safe rows 5 set search_path = '';
grant execute on function public.articles_related_articles to anon, authenticated, service_role;
comment on function public.articles_related_articles is
  'Other articles that share a tag with this one, those with the most tags in common first.';
