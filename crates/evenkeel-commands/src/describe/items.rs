//! Parses a field of a cron expression into items.

/// The unit of a cron field, such as hours or weekdays.
pub(super) struct Unit {
    pub first: u32,
    pub last: u32,
    /// Number of different values of the unit; weekdays have 7, because 0 and 7 are both Sunday.
    size: u32,
    /// Range of values from which `H` chooses one.
    drawn: (u32, u32),
    /// Names of the unit's values, such as weekdays, starting with the name of the first value.
    pub names: &'static [&'static str],
}

/// The unit of seconds and of minutes.
pub(super) const SIXTY: Unit = Unit { first: 0, last: 59, size: 60, drawn: (0, 59), names: &[] };
pub(super) const HOURS: Unit = Unit { first: 0, last: 23, size: 24, drawn: (0, 23), names: &[] };
pub(super) const DATES: Unit = Unit { first: 1, last: 31, size: 31, drawn: (1, 28), names: &[] };
pub(super) const MONTHS: Unit = Unit {
    first: 1,
    last: 12,
    size: 12,
    drawn: (1, 12),
    names: &[
        "January", "February", "March", "April", "May", "June", "July", "August", "September",
        "October", "November", "December",
    ],
};
pub(super) const WEEKDAYS: Unit = Unit {
    first: 0,
    last: 7,
    size: 7,
    drawn: (0, 6),
    names: &["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"],
};

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Item<'a> {
    /// A range of values that includes `first` and `last`. A single value is a range whose `first`
    /// and `last` are the same.
    Range { first: u32, last: u32, step: u32 },
    /// `H`: a fixed random value for each job, or every n-th value starting with that random value.
    Own { range: Option<(u32, u32)>, step: Option<u32> },
    /// A special day such as `L` or `5#2`.
    Day(&'a str),
}

impl Unit {
    /// Parses a field of a cron expression. Returns no items for a field that matches every value.
    pub fn items<'a>(&self, field: &'a str) -> Vec<Item<'a>> {
        let mut items: Vec<Item<'a>> = Vec::new();
        for item in field.split(',').map(|item| self.item(item)) {
            if !items.contains(&item) {
                items.push(item);
            }
        }
        let mut found = 0_u64;
        for item in &items {
            if let Item::Range { first, last, step } = *item {
                for value in (first..=last).step_by(step as usize) {
                    found |= 1 << ((value - self.first) % self.size);
                }
            }
        }
        if found.count_ones() == self.size { Vec::new() } else { items }
    }

    fn item<'a>(&self, item: &'a str) -> Item<'a> {
        let (base, step) = match item.split_once('/') {
            Some((base, step)) => (base, step.parse().ok().filter(|step| *step > 0)),
            None => (item, None),
        };
        let range = |text: &str| {
            let (first, last) = text.split_once('-')?;
            Some((self.value(first)?, self.value(last)?))
        };
        if let Some(brackets) = base.strip_prefix('H') {
            let range = range(brackets.trim_matches(['(', ')']));
            return match step {
                // `H/1` means every value of the range from which `H` chooses.
                Some(1) => {
                    let (first, last) = range.unwrap_or(self.drawn);
                    Item::Range { first, last, step: 1 }
                }
                step => Item::Own { range, step },
            };
        }
        let ends = match base {
            "*" | "?" => Some((self.first, self.last)),
            base if base.contains('-') => range(base),
            base => self.value(base).map(|first| (first, step.map_or(first, |_| self.last))),
        };
        match ends {
            Some((first, last)) => Item::Range { first, last, step: step.unwrap_or(1) },
            None => Item::Day(item),
        }
    }

    /// Parses a number or a name, such as `MON`, in a cron field.
    pub fn value(&self, text: &str) -> Option<u32> {
        let named = || {
            let mut names = self.names.iter().map(|name| &name[..3]);
            let index = names.position(|name| name.eq_ignore_ascii_case(text))?;
            Some(self.first + u32::try_from(index).ok()?)
        };
        text.parse().ok().or_else(named)
    }

    pub fn name(&self, value: u32) -> &'static str {
        let index = value.checked_sub(self.first).map_or(0, |index| index % self.size);
        self.names.get(index as usize).copied().unwrap_or_default()
    }
}
