-- In schema api, as api.translated_title. It runs as the caller, so policies hide articles here too.
create or replace function api.related_articles(article_id bigint, tags text[], "limit" integer) returns setof bigint
language sql stable parallel safe rows 5
begin atomic
  select other.id
  from public.articles as other
  where other.id in (select found.id from private.articles_sharing(related_articles.tags) as found (id))
    and other.id <> related_articles.article_id
  order by
    cardinality(array(select unnest(other.tags) intersect select unnest(related_articles.tags))) desc,
    other.created_at desc,
    other.id desc
  limit coalesce("limit", 5);
end;

grant execute on function api.related_articles to anon, authenticated, service_role;
comment on function api.related_articles is
  'The ids of other articles with one of the tags, those with the most tags in common first.';
