//! How spans are spread, for percentiles, without keeping the spans.
//!
//! The counters are log-linear: every octave is cut into 32 of one width. The middle of such a part
//! is within 1/64, 1.6 %, of all that fell into it, however long the spans are. An octave costs
//! memory only once a span falls into it, and a queue's mostly fall into a few.

/// Parts of an octave. With 32 the error is below 2 %.
const PARTS: usize = 32;
const PARTS_BITS: u32 = PARTS.trailing_zeros();

/// The spans below this, in nanoseconds, share one page, with parts of 8 ns: a clock tells no more,
/// and each octave down there would cost a page.
const LINEAR_BITS: u32 = 8;

/// The page of the linear part, and one for every octave from there to `u64::MAX`.
const OCTAVES: usize = (u64::BITS - LINEAR_BITS) as usize + 1;

/// In place of a page's number: more than there can be.
const NO_PAGE: u8 = u8::MAX;

/// The counters of one octave.
type Page = [u32; PARTS];

/// Counts spans by length, 128 bytes for each octave that it has seen, 7 KiB at most.
///
/// Where the memory for an octave's first span is refused, that span is left out: the percentiles
/// are then those of the others. The next one of its octave tries again.
#[derive(Debug)]
pub struct Histogram {
    /// Where in `pages` an octave is, or [`NO_PAGE`].
    page_of: [u8; OCTAVES],
    /// In the order in which they were needed.
    pages: Vec<Page>,
}

/// Takes no memory beyond itself until the first sample.
impl Default for Histogram {
    fn default() -> Self {
        Self { page_of: [NO_PAGE; OCTAVES], pages: Vec::new() }
    }
}

/// The octave of a span, and its part of it.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "both are below 64")]
const fn place(nanos: u64) -> (usize, usize) {
    // With this bit set, all that is linear lies in one octave.
    let zeros = (nanos | 1 << (LINEAR_BITS - 1)).leading_zeros();
    let octave = u64::BITS - LINEAR_BITS - zeros;
    (octave as usize, ((nanos >> shift(octave)) % PARTS as u64) as usize)
}

/// How many bits a part of this octave spans.
#[inline]
const fn shift(octave: u32) -> u32 {
    // The linear part is as wide as the octave after it.
    octave.saturating_sub(1) + LINEAR_BITS - PARTS_BITS
}

/// The middle of a part, in nanoseconds.
fn middle(octave: usize, part: usize) -> u64 {
    #[allow(clippy::cast_possible_truncation, reason = "an octave is less than 64")]
    let shift = shift(octave as u32);
    let first = if octave == 0 { part } else { PARTS + part } as u64;
    (first << shift) + (1 << (shift - 1))
}

impl Histogram {
    /// Counts a span of so many nanoseconds.
    #[inline]
    pub fn add(&mut self, nanos: u64) {
        let (octave, part) = place(nanos);
        match self.pages.get_mut(usize::from(self.page_of[octave])) {
            Some(page) if page[part] < u32::MAX => page[part] += 1,
            _ => self.add_after_all(octave, part),
        }
    }

    /// [`Histogram::add`] where there is no page yet, or the counter is full.
    #[cold]
    #[inline(never)]
    fn add_after_all(&mut self, octave: usize, part: usize) {
        if self.page_of[octave] == NO_PAGE {
            // Exactly one: what a vector likes to take ahead is for octaves that may never come.
            if self.pages.try_reserve_exact(1).is_err() {
                return;
            }
            #[allow(clippy::cast_possible_truncation, reason = "there are fewer than 64")]
            let page = self.pages.len() as u8;
            self.page_of[octave] = page;
            self.pages.push([0; PARTS]);
        } else {
            self.halve();
        }
        self.pages[usize::from(self.page_of[octave])][part] += 1;
    }

    /// Halves every counter, so that the shares stay: what was before weighs half from now on. It
    /// rounds up, for what is rare must not vanish.
    fn halve(&mut self) {
        for counter in self.pages.as_flattened_mut() {
            *counter = counter.div_ceil(2);
        }
    }

    /// The span, in nanoseconds, that this share of all spans, from 0 to 1, does not exceed: the
    /// nearest rank, within 1.6 % or, below 256 ns, within 4 ns. `None` without samples.
    ///
    /// ```
    /// use queue::core::histogram::Histogram;
    /// let mut histogram = Histogram::default();
    /// assert_eq!(histogram.percentile(0.5), None);
    /// (1..=100).for_each(|ms| histogram.add(ms * 1_000_000));
    /// let p95 = histogram.percentile(0.95).unwrap();
    /// assert!(p95.abs_diff(95_000_000) < 95_000_000 / 50);
    /// ```
    #[must_use]
    pub fn percentile(&self, share: f64) -> Option<u64> {
        let count: u64 = self.pages.as_flattened().iter().map(|&counter| u64::from(counter)).sum();
        // Fewer than 64 pages of 32 counters of 32 bits: a float holds the sum.
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss
        )]
        let rank = (share * count as f64).ceil() as u64;
        // The first has rank 1, and so has what is asked for with share 0.
        let mut left = rank.clamp(1, count.max(1));

        for (octave, &page) in self.page_of.iter().enumerate() {
            let Some(page) = self.pages.get(usize::from(page)) else { continue };
            for (part, &counter) in page.iter().enumerate() {
                if left <= u64::from(counter) {
                    return Some(middle(octave, part));
                }
                left -= u64::from(counter);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHARES: [f64; 3] = [0.5, 0.95, 0.99];

    fn histogram_of(samples: &[u64]) -> Histogram {
        let mut histogram = Histogram::default();
        for &nanos in samples {
            histogram.add(nanos);
        }
        histogram
    }

    /// Numbers in (0, 1], the same ones in every run: Knuth's generator.
    fn shares() -> impl Iterator<Item = f64> {
        let next = |bits: &u64| {
            Some(
                bits.wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407),
            )
        };
        std::iter::successors(Some(1), next)
            .map(|bits| (f64::from(u32::try_from(bits >> 32).unwrap()) + 1.0) / 2f64.powi(32))
    }

    /// Compares with the nearest ranks of 100,000 samples of this shape.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)]
    fn check_shape(name: &str, sample: impl Fn(f64, f64) -> f64) {
        let mut shares = shares();
        let mut next = || shares.next().unwrap();
        let mut samples: Vec<_> = (0..100_000).map(|_| sample(next(), next()) as u64).collect();
        let histogram = histogram_of(&samples);
        samples.sort_unstable();
        for share in SHARES {
            let rank = (share * samples.len() as f64).ceil() as usize;
            let exact = samples[rank - 1] as f64;
            let found = histogram.percentile(share).unwrap() as f64;
            assert!(
                (found - exact).abs() <= exact * 0.016,
                "{name}, {share}: {found}, not {exact}"
            );
        }
    }

    #[test]
    fn percentiles_are_near_whatever_the_shape() {
        check_shape("uniform", |a, _| 1e3 + 5e7 * a);
        check_shape("exponential", |a, _| 1e3 - 2e6 * a.ln());
        // Box and Muller's normal deviates; they span nine octaves and more.
        let normal = |a: f64, b: f64| (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos();
        check_shape("log-normal", |a, b| 1e6 * (2.0 * normal(a, b)).exp());
        check_shape("bimodal", |a, b| if a < 0.9 { 5e4 + 1e3 * b } else { 3e9 + 1e9 * b });
    }

    #[test]
    fn every_part_begins_where_the_one_before_ends() {
        let mut places = (0..OCTAVES).flat_map(|octave| (0..PARTS).map(move |part| (octave, part)));
        assert_eq!(places.next(), Some(place(0)), "the first part");
        let mut last = 0;
        for (octave, part) in places {
            let half = 1 << (shift(u32::try_from(octave).unwrap()) - 1);
            let first = middle(octave, part) - half;
            assert_eq!(place(first), (octave, part), "{first} begins a part");
            assert!(place(first - 1) < (octave, part), "{first} begins no part before");
            assert!(middle(octave, part) > last, "they ascend");
            assert!(octave == 0 || half <= first / 64, "{first} begins a part too wide");
            last = middle(octave, part);
        }
        assert_eq!(place(u64::MAX), (OCTAVES - 1, PARTS - 1));
    }

    #[test]
    fn any_span_has_a_place() {
        let percentile = |nanos| histogram_of(&[nanos]).percentile(0.5).unwrap();
        assert!(percentile(0) <= 4 && percentile(1) <= 5);
        assert!(percentile(150).abs_diff(150) <= 4 && percentile(600).abs_diff(600) <= 12);
        assert!(u64::MAX - percentile(u64::MAX) <= u64::MAX / 64);
    }

    #[test]
    fn a_histogram_without_samples_has_no_percentiles_and_no_memory() {
        let histogram = Histogram::default();
        assert_eq!(histogram.percentile(0.5), None);
        assert_eq!(histogram.pages.capacity(), 0);
    }

    #[test]
    fn ranks_are_the_nearest() {
        let histogram = histogram_of(&[100, 1_000, 10_000, 100_000]);
        let near = |share, exact: u64| {
            histogram.percentile(share).unwrap().abs_diff(exact) <= exact.div_ceil(20)
        };
        assert!(near(-1.0, 100) && near(0.0, 100) && near(0.25, 100));
        assert!(near(0.250_001, 1_000) && near(0.5, 1_000));
        assert!(near(0.75, 10_000) && near(0.750_001, 100_000));
        assert!(near(1.0, 100_000) && near(2.0, 100_000) && near(f64::INFINITY, 100_000));
        assert!(near(f64::NAN, 100), "no number is no share");
    }

    #[test]
    fn halving_keeps_the_shares() {
        let mut histogram = histogram_of(&[1_000, 1_000_000, 1_000_000_000]);
        let counter = |histogram: &Histogram, nanos| {
            let (octave, part) = place(nanos);
            histogram.pages[usize::from(histogram.page_of[octave])][part]
        };
        for (nanos, count) in [(1_000, u32::MAX), (1_000_000, u32::MAX / 4)] {
            let (octave, part) = place(nanos);
            histogram.pages[usize::from(histogram.page_of[octave])][part] = count;
        }
        let before = [0.1, 0.79, 0.81, 1.0].map(|share| histogram.percentile(share));
        histogram.add(1_000);
        assert_eq!(counter(&histogram, 1_000), (1 << 31) + 1);
        assert_eq!(counter(&histogram, 1_000_000), 1 << 29);
        assert_eq!(counter(&histogram, 1_000_000_000), 1, "what is rare stays");
        assert_eq!(before, [0.1, 0.79, 0.81, 1.0].map(|share| histogram.percentile(share)));
    }

    #[test]
    fn memory_grows_by_a_page_for_an_octave_and_no_further() {
        let mut histogram = Histogram::default();
        (1_000_000..1_040_000).for_each(|nanos| histogram.add(nanos));
        assert_eq!(histogram.pages.capacity(), 1, "one octave, one page");
        for _ in 0..3 {
            for bit in 0..u64::BITS {
                histogram.add(1 << bit);
                histogram.add(u64::MAX >> bit);
            }
            assert_eq!((histogram.pages.len(), histogram.pages.capacity()), (OCTAVES, OCTAVES));
        }
    }
}
