-- A standard body, because callers have no USAGE on schema private; it selects whole rows ("select other"), because other.* would be
-- frozen to today's columns.
create or replace function public.articles_related_articles(article public.articles, "limit" integer default 5)
returns setof public.articles
language sql stable parallel safe rows 5
begin atomic
  select other
  from public.articles as other
  where other.id in (select found.id from private.articles_sharing(article.tags) as found (id)) and other.id <> article.id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(article.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
end;

grant execute on function public.articles_related_articles to anon, authenticated, service_role;
comment on function public.articles_related_articles is
  'Other articles that share a tag with this one, those with the most tags in common first.';
