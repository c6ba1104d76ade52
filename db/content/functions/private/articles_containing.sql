-- As the owner, because Postgres uses the indexes of substrings, documents and tags only where no policy has to be checked before: their
-- operators are not leakproof. Callers receive the ids in queries that apply the policies to the articles themselves.
-- Substrings, and languages written without spaces, are found in private.article_text; separate words in private.article_document.
-- Each has its index. A union instead of "or", which would check every hit of one index against the other expression (120 µs to
-- parse a document of 2 kB); a single word needs the first only.
-- The keyword is cut: one of a million words exceeds a limit of Postgres (54000), and cannot be cancelled before that.
create or replace function private.articles_containing(keyword text) returns setof bigint as $$
  select part.id from public.articles as part
  where private.article_text(part.title, part.tags, part.content) ilike private.containing(keyword)
  union
  select word.id from public.articles as word
  where btrim(keyword) ~ '[^[:alnum:]]'
    and private.article_document(word.title, word.tags, word.content)
      @@ plainto_tsquery('simple', left(keyword, 1000));
$$ language sql stable parallel safe rows 20 security definer set search_path = '';
grant execute on function private.articles_containing to anon, authenticated, service_role;
comment on function private.articles_containing is 'The ids of all articles with the keyword, whoever may read them.';
