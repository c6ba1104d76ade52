-- With the rights of who writes, unlike the other checks.
create or replace function private.tg__check_schedule_role() returns trigger as $$
begin
  -- A schedule whose role is gone can be disabled.
  if TG_OP = 'UPDATE' and not NEW.is_enabled and NEW.role = OLD.role then
    return NEW;
  end if;
  if NEW.role is null then
    raise exception 'A schedule must have a role' using errcode = 'WRONG', detail = 'role',
      hint = 'Write the role that the function runs as, such as service_role.';
  end if;
  if to_regrole(quote_ident(NEW.role)) is null then
    raise exception 'There is no role %', NEW.role using errcode = 'WRONG', detail = 'role';
  end if;
  if not pg_has_role(to_regrole(quote_ident(NEW.role)), 'member') then
    raise exception 'Only members of % may choose it as the role of a schedule', NEW.role
      using errcode = 'NOPER', detail = 'role', hint = format('Run as a superuser: grant %I to %I', NEW.role, current_user);
  end if;
  return NEW;
end;
$$ language plpgsql set search_path = '';
comment on function private.tg__check_schedule_role is 'Refuses a role that the writer of a schedule is no member of.';
